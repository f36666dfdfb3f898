// The room NwakuRelay.
