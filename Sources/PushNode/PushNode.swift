// The room PushNode.
