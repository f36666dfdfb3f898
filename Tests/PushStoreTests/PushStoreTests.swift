// The tests of PushStore.
