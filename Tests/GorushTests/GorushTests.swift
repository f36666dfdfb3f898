// The tests of Gorush.
