// The tests of NwakuRelay.
