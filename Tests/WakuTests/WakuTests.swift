// The tests of Waku.
