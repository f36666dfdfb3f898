import CCurl

/// An easy handle, with the memory that its transfer lends to libcurl. Not for more than one thread at a time.
final class CurlHandle {
    let pointer: UnsafeMutableRawPointer
    private var headers: UnsafeMutablePointer<curl_slist>?
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
        errorText.deallocate()
    }

    /// As new, for another transfer. What libcurl learnt of hosts and connections stays.
    func reset() {
        curl_easy_reset(pointer)
        curl_slist_free_all(headers)
        headers = nil
        errorText.pointee = 0
    }

    /// What libcurl wrote about a failure.
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

    /// One line as libcurl takes it: `name: value`, `name;` for an empty value, `name:` to leave out one of its own.
    func addHeader(_ line: String) {
        // nil when there is no memory; the list is as it was then.
        headers = curl_slist_append(headers, line) ?? headers
    }

    func useHeaders() {
        guard let headers else { return }
        set(CURLOPT_HTTPHEADER, UnsafeMutableRawPointer(headers))
    }

    var responseStatus: Int {
        var status = 0
        waku_curl_get_long(pointer, CURLINFO_RESPONSE_CODE, &status)
        return status
    }
}
