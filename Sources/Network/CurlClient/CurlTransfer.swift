import CCurl
import Core
import Foundation

/// A request on an easy handle, and the part of the response received so far.
final class CurlTransfer {
    /// Limits of a response's headers, in bytes and in lines.
    static let maximumHeaderByteCount = 65_536
    static let maximumHeaderCount = 256

    let task: CurlTask
    let handle: CurlHandle
    let deadline: Instant
    let begun = Instant.now

    private var headers: [(name: String, value: String)] = []
    private var headerByteCount = 0
    private var headerCount = 0
    private var body: [UInt8] = []
    /// The part of the request's body that libcurl has read, if it reads it by a callback.
    private var sentByteCount = 0
    private var isTooLarge = false
    /// The body is longer than the part that was received: see ``HTTPRequest/cutsLongResponses``.
    private var isCut = false
    /// Whether all headers of the final response were received.
    private var hasHead = false
    /// See ``CurlConfiguration/Destinations-swift.enum``.
    private var networks: [AddressRange]?
    private var hasRefusedAddress = false
    private let connections: ConnectionPace
    private var hasBusyAddress = false

    init(task: CurlTask, handle: CurlHandle, deadline: Instant, connections: ConnectionPace) {
        self.connections = connections
        self.task = task
        self.handle = handle
        self.deadline = deadline
    }

    /// The transfer of an easy handle; the loop retains it while the handle is in use.
    static func from(_ handle: UnsafeMutableRawPointer) -> CurlTransfer? {
        var pointer: UnsafeMutableRawPointer?
        waku_curl_get_pointer(handle, CURLINFO_PRIVATE, &pointer)
        return pointer.map(CurlTransfer.from(context:))
    }

    private static func from(context: UnsafeMutableRawPointer) -> CurlTransfer {
        Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
    }

    /// Sets all options of the handle.
    ///
    /// - Throws: ``HTTPError/Code/badURL``, or ``HTTPError/Code/other`` for an invalid method or header.
    func prepare(_ configuration: CurlConfiguration) throws(HTTPError) {
        try handle.configure(configuration)
        try handle.configure(task.request, extraHeaders: configuration.headers)
        let context = Unmanaged.passUnretained(self).toOpaque()
        handle.set(CURLOPT_PRIVATE, context)
        handle.set(CURLOPT_WRITEDATA, context)
        handle.set(CURLOPT_HEADERDATA, context)
        if case .publicAddresses(let networks) = configuration.destinations {
            self.networks = networks
            waku_curl_set_pointer(handle.pointer, CURLOPT_OPENSOCKETDATA, context)
            waku_curl_set_opensocket(handle.pointer) { context, _, address in
                guard let context, let address else { return waku_curl_socket_bad }
                return CurlTransfer.from(context: context).openSocket(address)
            }
        }
        if !task.request.isRepeatable {
            // Without a CURLOPT_SEEKFUNCTION, libcurl can't begin the body again.
            handle.set(CURLOPT_READDATA, context)
            handle.set(CURLOPT_READFUNCTION) { buffer, _, count, context in
                guard let buffer, let context else { return 0 }
                return CurlTransfer.from(context: context).sendBody(into: UnsafeMutableRawBufferPointer(start: buffer, count: count))
            }
        }
        // Returning another count ends the transfer.
        handle.set(CURLOPT_WRITEFUNCTION) { bytes, _, count, context in
            guard let context else { return 0 }
            return CurlTransfer.from(context: context).receiveBody(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
        }
        handle.set(CURLOPT_HEADERFUNCTION) { bytes, _, count, context in
            guard let context else { return 0 }
            return CurlTransfer.from(context: context).receiveHeader(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
        }
    }

    /// The result of the request when libcurl completed the transfer.
    func result(_ result: CURLcode) -> Result<HTTPResponse, HTTPError> {
        if isTooLarge { return .failure(HTTPError(.tooLarge, "the response is larger than allowed")) }
        if hasRefusedAddress, result == CURLE_COULDNT_CONNECT {
            return .failure(HTTPError(.refusedAddress, "the host has an address that must not be connected to"))
        }
        if hasBusyAddress, result == CURLE_COULDNT_CONNECT {
            return .failure(HTTPError(.busyAddress, "too many new connections to this address"))
        }
        guard result == CURLE_OK || isCut || hasUsableHead else {
            let error = HTTPError(result, detail: handle.detail)
            // After the end of a connection that was used before, libcurl connects again before it finds that the body can't be sent again.
            let isSent = sentByteCount > 0 && [.resolve, .connect, .tls].contains(error.code)
            return .failure(isSent ? HTTPError(.interrupted, "the connection ended before the answer") : error)
        }
        return .success(makeResponse())
    }

    /// The result when the deadline has passed.
    var overdue: Result<HTTPResponse, HTTPError> {
        hasUsableHead ? .success(makeResponse()) : .failure(HTTPError(CURLE_OPERATION_TIMEDOUT, detail: ""))
    }

    /// Whether the status decides although the body has not ended: see ``HTTPRequest/cutsLongResponses``.
    private var hasUsableHead: Bool { hasHead && task.request.cutsLongResponses }

    private func makeResponse() -> HTTPResponse {
        let address = networks == nil ? nil : handle.address
        if let address { connections.worked(task.request.origin, at: address) }
        return HTTPResponse(
            status: handle.responseStatus, headers: headers, body: body, address: address, certificateEnd: handle.certificateEnd)
    }

    /// Opens a socket for an address unless it must not be connected to.
    private func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        let length = min(Int(address.pointee.addrlen), MemoryLayout<sockaddr_storage>.size)
        let ip = IPAddress(socketAddress: UnsafeRawBufferPointer(start: waku_curl_socket_address(address), count: length))
        guard let ip, ip.isPublic || networks?.contains(where: { $0.contains(ip) }) == true else {
            hasRefusedAddress = true
            return waku_curl_socket_bad
        }
        guard connections.admits(task.request.origin, to: ip, hasAnswered: task.request.hasAnswered, at: .now) else {
            hasBusyAddress = true
            return waku_curl_socket_bad
        }
        return socket(address.pointee.family, address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue), address.pointee.protocol)
    }

    /// - Returns: the number of bytes; 0 at the end.
    private func sendBody(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let part = (task.request.body ?? []).dropFirst(sentByteCount).prefix(buffer.count)
        buffer.copyBytes(from: part)
        sentByteCount += part.count
        return part.count
    }

    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let room = task.request.maximumResponseByteCount - body.count
        guard bytes.count <= room else {
            (isCut, isTooLarge) = (task.request.cutsLongResponses, !task.request.cutsLongResponses)
            if isCut { body.append(contentsOf: bytes.prefix(room)) }
            return false
        }
        body.append(contentsOf: bytes)
        return true
    }

    /// Receives one line, its end included. The status line of the next response discards the headers of an interim one, which still count
    /// towards the limits.
    private func receiveHeader(_ bytes: UnsafeRawBufferPointer) -> Bool {
        headerByteCount += bytes.count
        headerCount += 1
        guard headerByteCount <= Self.maximumHeaderByteCount, headerCount <= Self.maximumHeaderCount else {
            isTooLarge = true
            return false
        }
        let line = String(decoding: bytes, as: UTF8.self)
        if line.hasPrefix("HTTP/") {
            (headers, hasHead) = ([], false)
        } else if line == "\r\n" || line == "\n" {
            hasHead = handle.responseStatus >= 200
        } else if let colon = line.firstIndex(of: ":") {
            headers.append((String(line[..<colon]), line[line.index(after: colon)...].trimmingHTTPSpace()))
        }
        return true
    }
}

extension Substring {
    /// The text without leading and trailing spaces, tabs and line ends.
    func trimmingHTTPSpace() -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\r\n" || $0 == "\n" || $0 == "\r" }
        guard let last = lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(self[...last].drop(while: isSpace))
    }
}
