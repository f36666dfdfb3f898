// The room Gorush.
