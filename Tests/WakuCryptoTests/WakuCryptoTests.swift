// The tests of WakuCrypto.
