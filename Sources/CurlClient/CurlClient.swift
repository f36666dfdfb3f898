// The room CurlClient.
