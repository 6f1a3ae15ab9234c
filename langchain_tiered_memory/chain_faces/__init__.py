"""What the faces for chains share: reading what a chain hands over, and a chat history whose turns lose nothing."""
