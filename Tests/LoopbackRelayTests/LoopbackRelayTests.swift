// The tests of LoopbackRelay.
