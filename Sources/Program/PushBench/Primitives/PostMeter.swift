import CCurl
import WakuPushCommands

/// POSTs of 600 bytes through libcurl's multi interface, 16 in flight, to a server on 127.0.0.1. Measures only the CPU time of libcurl's
/// thread.
enum PostMeter {
    private static let inFlight = 16

    static func measure(for duration: Duration) async throws -> CoreRun {
        try await GorushStandIn.running { gorush in
            let url = gorush + "/api/push"
            return try await CoreRun.measure(cores: 1, for: duration) {
                let posts = BarePosts(urls: [url], count: inFlight)
                return CoreOperation { posts.perform() }
            }
        }
    }

    /// POSTs over TLS, 64 in flight, to several servers.
    ///
    /// - Parameter authority: PEM file of the certificate authority.
    static func measure(urls: [String], authority: String, for duration: Duration) async throws -> CoreRun {
        try await CoreRun.measure(cores: 1, for: duration) {
            let posts = BarePosts(urls: urls, count: 64, authority: authority)
            // Makes the connections.
            var ended = 0
            while ended < 256 { ended += posts.perform() }
            return CoreOperation { posts.perform() }
        }
    }
}

/// Handles that repeat the same post. For one thread.
private final class BarePosts {
    private let multi = curl_multi_init()
    private var handles: [UnsafeMutableRawPointer] = []
    private let headers = curl_slist_append(nil, "Content-Type: application/json")

    /// - Parameter authority: for TLS, with the body of a Web Push message.
    init(urls: [String], count: Int, authority: String? = nil) {
        let body = [UInt8](repeating: 120, count: authority == nil ? 600 : 1_127)
        _ = waku_curl_global_init()
        for number in 0..<count {
            guard let handle = curl_easy_init() else { preconditionFailure("libcurl has no memory") }
            waku_curl_set_string(handle, CURLOPT_URL, urls[number % urls.count])
            if let authority { waku_curl_set_string(handle, CURLOPT_CAINFO, authority) }
            waku_curl_set_string(handle, CURLOPT_PROXY, "")
            waku_curl_set_long(handle, CURLOPT_POSTFIELDSIZE, body.count)
            waku_curl_set_string(handle, CURLOPT_COPYPOSTFIELDS, String(decoding: body, as: UTF8.self))
            waku_curl_set_pointer(handle, CURLOPT_HTTPHEADER, headers)
            waku_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
            waku_curl_set_write(handle, CURLOPT_WRITEFUNCTION) { _, size, count, _ in size * count }
            curl_multi_add_handle(multi, handle)
            handles.append(handle)
        }
    }

    deinit {
        for handle in handles {
            curl_multi_remove_handle(multi, handle)
            curl_easy_cleanup(handle)
        }
        curl_multi_cleanup(multi)
        curl_slist_free_all(headers)
    }

    /// Returns the number of completed posts, at least one.
    func perform() -> Int {
        var ended = 0
        while ended == 0 {
            var (running, left): (Int32, Int32) = (0, 0)
            curl_multi_perform(multi, &running)
            while let message = curl_multi_info_read(multi, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle else { continue }
                precondition(waku_curl_message_result(message) == CURLE_OK, "a POST to 127.0.0.1 failed")
                ended += 1
                curl_multi_remove_handle(multi, handle)
                curl_multi_add_handle(multi, handle)
            }
            if ended == 0 { curl_multi_poll(multi, nil, 0, 1000, nil) }
        }
        return ended
    }
}
