// Shared by tests only.
