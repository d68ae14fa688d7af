"""Pictures, tables and progress lines for people; nothing here knows what a session is."""
