import CCurl

extension HTTPError {
    /// - Parameters:
    ///   - result: libcurl's result code.
    ///   - detail: libcurl's description. Used only for errors for which it mentions nothing but host, port and certificate.
    init(_ result: CURLcode, detail: String) {
        switch result {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            self.init(.resolve, Self.phrase("the host's name could not be resolved", detail))
        case CURLE_COULDNT_CONNECT, CURLE_PROXY, CURLE_INTERFACE_FAILED:
            self.init(.connect, Self.phrase("no connection", detail))
        case CURLE_OPERATION_TIMEDOUT:
            self.init(.timeout, "timed out")
        case CURLE_SSL_CACERT_BADFILE:
            self.init(.tls, "the file of trusted certificates can't be used")
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR,
            CURLE_SSL_CLIENTCERT, CURLE_SSL_INVALIDCERTSTATUS, CURLE_USE_SSL_FAILED, CURLE_SSL_ENGINE_INITFAILED:
            self.init(.tls, Self.phrase("no trusted connection", detail))
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_HTTP2, CURLE_HTTP2_STREAM,
            CURLE_SEND_FAIL_REWIND:
            self.init(.interrupted, "the connection broke")
        case CURLE_URL_MALFORMAT, CURLE_LOGIN_DENIED:
            self.init(.badURL, "not an absolute http or https URL without credentials")
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING:
            // The URL's scheme was checked before, so that the server's protocol is the unsupported one.
            self.init(.other, "the reply is not HTTP")
        default:
            self.init(.other, "the transfer failed (libcurl \(result.rawValue))")
        }
    }

    /// Limits the detail to 160 printable ASCII characters for log lines: a server chooses the names in its certificate.
    private static func phrase(_ summary: String, _ detail: String) -> String {
        let plain = detail.unicodeScalars.filter { (0x20..<0x7f).contains($0.value) }.prefix(160)
        return plain.isEmpty ? summary : "\(summary): \(String(String.UnicodeScalarView(plain)))"
    }
}
