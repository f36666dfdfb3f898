// The tests of PushServer.
