// The tests of CurlClient.
