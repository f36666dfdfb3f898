import CCurl

extension CurlHandle {
    /// What a client's requests have in common.
    func configure(_ configuration: CurlConfiguration) throws(HTTPError) {
        collectDetail()
        // Signals belong to the process, not to a library's thread.
        set(CURLOPT_NOSIGNAL, 1)
        // A name lookup that hangs is left behind: waiting for its thread would halt every other transfer.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        // What a proxy answers to CONNECT is not the response.
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        try set(CURLOPT_USERAGENT, checked: configuration.userAgent)
        if let path = configuration.unixSocketPath { try set(CURLOPT_UNIX_SOCKET_PATH, checked: path) }
        waku_curl_set_tls_1_2(pointer)
        if case .file(let path) = configuration.trust {
            try set(CURLOPT_CAINFO, checked: path)
            // Debian's libcurl trusts a folder besides.
            set(CURLOPT_CAPATH, nil)
        }
        switch configuration.credentials {
        case .none: break
        case .basic(let user, let password):
            waku_curl_set_basic_auth(pointer)
            try set(CURLOPT_USERNAME, checked: user)
            try set(CURLOPT_PASSWORD, checked: password)
        case .bearer(let token):
            waku_curl_set_bearer_auth(pointer)
            try set(CURLOPT_XOAUTH2_BEARER, checked: token)
        }
    }

    /// What is this request's own.
    func configure(_ request: HTTPRequest, extraHeaders: [(name: String, value: String)]) throws(HTTPError) {
        try setURL(request.url)
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(request.connectTimeout.wholeMilliseconds))
        try setMethod(request.method, body: request.body)
        // libcurl would wait a second for "100 Continue", and call every body a form.
        addHeader("Expect:")
        if request.body != nil { addHeader("Content-Type:") }
        for header in extraHeaders + request.headers { try addHeader(name: header.name, value: header.value) }
        useHeaders()
    }

    private func setURL(_ url: String) throws(HTTPError) {
        // libcurl guesses a scheme where there is none.
        let start = url.prefix(8).lowercased()
        guard start.hasPrefix("http://") || start == "https://", !url.utf8.contains(0) else {
            throw HTTPError(CURLE_URL_MALFORMAT, detail: "")
        }
        set(CURLOPT_URL, url)
    }

    private func setMethod(_ method: String, body: [UInt8]?) throws(HTTPError) {
        guard !method.isEmpty, method.utf8.allSatisfy(Self.isTokenByte) else { throw HTTPError(.other, "not a method of HTTP") }
        switch (method, body) {
        case ("GET", nil): set(CURLOPT_HTTPGET, 1)
        case ("HEAD", nil): set(CURLOPT_NOBODY, 1)
        case (_, nil) where method != "POST": set(CURLOPT_CUSTOMREQUEST, method)
        default:
            set(CURLOPT_POST, 1)
            setBody(body ?? [])
            if method != "POST" { set(CURLOPT_CUSTOMREQUEST, method) }
        }
    }

    /// A line break in a header would be the start of another one.
    private func addHeader(name: String, value: String) throws(HTTPError) {
        guard !name.isEmpty, name.utf8.allSatisfy(Self.isTokenByte), value.utf8.allSatisfy(Self.isValueByte) else {
            throw HTTPError(.other, "a header with a name or value that HTTP does not allow")
        }
        addHeader(value.isEmpty ? "\(name);" : "\(name): \(value)")
    }

    /// For text that goes into a header or a path: neither a line break nor the NUL that ends libcurl's strings.
    private func set(_ option: CURLoption, checked text: String) throws(HTTPError) {
        guard text.utf8.allSatisfy(Self.isValueByte) else { throw HTTPError(.other, "an option with a control character") }
        set(option, text)
    }

    /// RFC 9110, a token.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func isValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7f || byte == UInt8(ascii: "\t")
    }
}
