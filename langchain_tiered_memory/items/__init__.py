"""Items of LangGraph's store: rows by owner and namespace, filters, and search by meaning or by words."""
