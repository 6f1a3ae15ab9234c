"""`python -m langchain_tiered_memory`: the command line."""

from langchain_tiered_memory.cli.app import main

if __name__ == "__main__":
    main()
