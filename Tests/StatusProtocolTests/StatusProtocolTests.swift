// The tests of StatusProtocol.
