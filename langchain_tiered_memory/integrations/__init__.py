"""LangChain and LangGraph: middleware, nodes, tools, retriever and histories. Subpackages hold their private parts."""
