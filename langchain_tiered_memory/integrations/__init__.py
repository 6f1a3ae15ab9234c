"""LangChain and LangGraph: middleware, nodes, tools, retriever, histories; private parts by kind."""
