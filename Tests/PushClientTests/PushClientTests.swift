// The tests of PushClient.
