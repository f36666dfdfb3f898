import CCurl
import Core

/// An easy handle, and the memory that libcurl uses during its transfer. Used by one thread at a time.
final class CurlHandle {
    let pointer: UnsafeMutableRawPointer
    private var headers: UnsafeMutablePointer<curl_slist>?
    private var resolved: UnsafeMutablePointer<curl_slist>?
    private let errorText: UnsafeMutablePointer<CChar>

    init() {
        guard let pointer = curl_easy_init() else { preconditionFailure("libcurl has no memory for an easy handle") }
        self.pointer = pointer
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        curl_easy_cleanup(pointer)
        curl_slist_free_all(headers)
        curl_slist_free_all(resolved)
        errorText.deallocate()
    }

    /// Resets all options for another transfer. libcurl's caches of hosts and connections are kept.
    func reset() {
        curl_easy_reset(pointer)
        curl_slist_free_all(headers)
        headers = nil
        curl_slist_free_all(resolved)
        resolved = nil
        errorText.pointee = 0
    }

    /// libcurl's description of a failure.
    var detail: String { String(cString: errorText) }

    func collectDetail() {
        waku_curl_set_pointer(pointer, CURLOPT_ERRORBUFFER, errorText)
    }

    func set(_ option: CURLoption, _ value: Int) {
        waku_curl_set_long(pointer, option, value)
    }

    /// libcurl copies the text.
    func set(_ option: CURLoption, _ value: String?) {
        waku_curl_set_string(pointer, option, value)
    }

    func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer) {
        waku_curl_set_pointer(pointer, option, value)
    }

    func set(
        _ option: CURLoption, _ callback: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int
    ) {
        waku_curl_set_write(pointer, option, callback)
    }

    /// libcurl copies the body.
    func setBody(_ body: [UInt8]) {
        set(CURLOPT_POSTFIELDSIZE, body.count)
        body.withUnsafeBytes { bytes in
            // An empty array may have no address, which would make libcurl ask a callback for the body.
            guard let start = bytes.baseAddress else { return set(CURLOPT_COPYPOSTFIELDS, "") }
            set(CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: start))
        }
    }

    /// Adds a line in libcurl's syntax: `name: value`, `name;` for an empty value, `name:` to omit one of libcurl's own.
    func addHeader(_ line: String) {
        // nil when out of memory: the list is unchanged then.
        headers = curl_slist_append(headers, line) ?? headers
    }

    func useHeaders() {
        guard let headers else { return }
        set(CURLOPT_HTTPHEADER, UnsafeMutableRawPointer(headers))
    }

    /// Sets the addresses of names: see ``CurlConfiguration/resolve``.
    func setResolved(_ entries: [String]) {
        for entry in entries { resolved = curl_slist_append(resolved, entry) ?? resolved }
        guard let resolved else { return }
        set(CURLOPT_RESOLVE, UnsafeMutableRawPointer(resolved))
    }

    /// The address of the last connection.
    var address: IPAddress? {
        var text: UnsafeMutableRawPointer?
        waku_curl_get_pointer(pointer, CURLINFO_PRIMARY_IP, &text)
        return text.flatMap { IPAddress(String(cString: $0.assumingMemoryBound(to: CChar.self))) }
    }

    /// When the server's certificate expires, in seconds since 1970.
    var certificateEnd: Int? {
        let end = waku_curl_certificate_end(pointer)
        return end < 0 ? nil : Int(end)
    }

    var responseStatus: Int {
        var status = 0
        waku_curl_get_long(pointer, CURLINFO_RESPONSE_CODE, &status)
        return status
    }
}
