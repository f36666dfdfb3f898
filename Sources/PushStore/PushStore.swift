// The room PushStore.
