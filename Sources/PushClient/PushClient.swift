// The room PushClient.
