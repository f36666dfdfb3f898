// The room LoopbackRelay.
