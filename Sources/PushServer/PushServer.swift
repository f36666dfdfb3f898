// The room PushServer.
