import Core
import CCurl
import Foundation

extension CurlHandle {
    /// Applies the settings for all requests of a client.
    func configure(_ configuration: CurlConfiguration) throws(HTTPError) {
        collectDetail()
        // libcurl must not change the process's signal handlers.
        set(CURLOPT_NOSIGNAL, 1)
        // Abandon a hanging name lookup: waiting for its thread would block all other transfers.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_NOPROXY, Self.hostsWithoutProxy)
        // A proxy's headers to CONNECT are not part of the response.
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        try set(CURLOPT_USERAGENT, checked: configuration.userAgent)
        if let path = configuration.unixSocketPath { try set(CURLOPT_UNIX_SOCKET_PATH, checked: path) }
        waku_curl_set_tls_1_2(pointer)
        if configuration.readsCertificates {
            set(CURLOPT_CERTINFO, 1)
            // A resumed session has the certificate of the first one, and a connection in use would never see the server's next one.
            set(CURLOPT_SSL_SESSIONID_CACHE, 0)
            set(CURLOPT_MAXLIFETIME_CONN, 3600)
        }
        if case .file(let path) = configuration.trust {
            try set(CURLOPT_CAINFO, checked: path)
            // Debian's libcurl additionally trusts a folder by default.
            set(CURLOPT_CAPATH, nil)
        }
        if let resolve = configuration.resolve { setResolved(resolve()) }
        if case .publicAddresses = configuration.destinations {
            set(CURLOPT_PROTOCOLS_STR, "https")
            set(CURLOPT_PROXY, "")
            set(CURLOPT_NETRC, 0)
            waku_curl_limit_tls_work(pointer)
            if case .system = configuration.trust { waku_curl_use_default_authorities_file(pointer) }
            waku_curl_set_http_2_tls(pointer)
            // Wait for a connection that may carry several requests, rather than opening another.
            set(CURLOPT_PIPEWAIT, 1)
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

    /// Hosts that are connected to without the proxy of the environment: its own list, which this one replaces, and this machine. A proxy that runs
    /// elsewhere can't reach a gorush or a Waku node here, and would see the device tokens of the posts.
    private static let hostsWithoutProxy: String = {
        let environment = ProcessInfo.processInfo.environment
        let listed = environment["no_proxy"] ?? environment["NO_PROXY"] ?? ""
        // "*" stands for all hosts only if nothing follows it.
        return listed == "*" ? listed : listed + ",localhost,127.0.0.0/8,::1"
    }()

    /// Applies the settings of one request.
    func configure(_ request: HTTPRequest, extraHeaders: [(name: String, value: String)]) throws(HTTPError) {
        try setURL(request.url)
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(request.connectTimeout.wholeMilliseconds))
        try setMethod(request.method, body: request.body, isRepeatable: request.isRepeatable)
        if !request.isRepeatable { set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)) }
        // Without these libcurl would wait a second for "100 Continue" and label every body as a form.
        addHeader("Expect:")
        if request.body != nil { addHeader("Content-Type:") }
        for header in extraHeaders + request.headers { try addHeader(name: header.name, value: header.value) }
        useHeaders()
    }

    private func setURL(_ url: String) throws(HTTPError) {
        // libcurl would guess a missing scheme.
        let start = url.prefix(8).lowercased()
        guard start.hasPrefix("http://") || start == "https://", !url.utf8.contains(0) else {
            throw HTTPError(CURLE_URL_MALFORMAT, detail: "")
        }
        set(CURLOPT_URL, url)
    }

    private func setMethod(_ method: String, body: [UInt8]?, isRepeatable: Bool) throws(HTTPError) {
        guard !method.isEmpty, method.utf8.allSatisfy(Self.isTokenByte) else { throw HTTPError(.other, "not an HTTP method") }
        switch (method, body) {
        case ("GET", nil): set(CURLOPT_HTTPGET, 1)
        case ("HEAD", nil): set(CURLOPT_NOBODY, 1)
        case (_, nil) where method != "POST": set(CURLOPT_CUSTOMREQUEST, method)
        default:
            set(CURLOPT_POST, 1)
            if isRepeatable { setBody(body ?? []) } else { set(CURLOPT_POSTFIELDSIZE, body?.count ?? 0) }
            if method != "POST" { set(CURLOPT_CUSTOMREQUEST, method) }
        }
    }

    /// Refuses line breaks, which would start another header.
    private func addHeader(name: String, value: String) throws(HTTPError) {
        guard Self.allowsHeader(name: name, value: value) else {
            throw HTTPError(.other, "a header with a name or value that HTTP does not allow")
        }
        addHeader(value.isEmpty ? "\(name);" : "\(name): \(value)")
    }

    /// For text that becomes part of a header or path: refuses line breaks and NUL, which would end it.
    private func set(_ option: CURLoption, checked text: String) throws(HTTPError) {
        guard text.utf8.allSatisfy(Self.isValueByte) else { throw HTTPError(.other, "an option with a control character") }
        set(option, text)
    }

    static func allowsHeader(name: String, value: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy(isTokenByte) && value.utf8.allSatisfy(isValueByte)
    }

    /// A byte of a token, RFC 9110.
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }

    private static func isValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7f || byte == UInt8(ascii: "\t")
    }
}
