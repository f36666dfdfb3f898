// The tests of PushNode.
