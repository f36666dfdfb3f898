import CZeroMQ
import Foundation

/// A socket of libzmq. May be used only on the thread that created it; closed when it is released.
final class ZeroMQSocket {
    private let library: ZeroMQLibrary
    private let pointer: UnsafeMutableRawPointer
    /// For epoll: readable if there may be messages to receive. Then, and after every send, ``receive(maximumPartCount:)`` must be called until it
    /// returns nil.
    let descriptor: Int32
    private var isClosed = false

    struct Failure: Error {
        let text: String
    }

    init(_ library: ZeroMQLibrary, context: UnsafeMutableRawPointer, type: Int) throws(Failure) {
        let table = library.table.pointee
        guard let pointer = table.zmq_socket(context, Int32(type)) else { throw Failure(text: library.text(of: library.lastError)) }
        var (descriptor, size) = (Int32(-1), MemoryLayout<Int32>.size)
        guard table.zmq_getsockopt(pointer, Int32(CZMQ_FD), &descriptor, &size) == 0 else {
            let text = library.text(of: library.lastError)
            _ = table.zmq_close(pointer)
            throw Failure(text: text)
        }
        (self.library, self.pointer, self.descriptor) = (library, pointer, descriptor)
    }

    deinit {
        close()
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        _ = library.table.pointee.zmq_close(pointer)
    }

    func set(_ option: Int, _ value: Int) throws(Failure) {
        var value = Int32(clamping: value)
        try check(library.table.pointee.zmq_setsockopt(pointer, Int32(option), &value, MemoryLayout<Int32>.size))
    }

    func setSize(_ option: Int, _ value: Int) throws(Failure) {
        var value = Int64(value)
        try check(library.table.pointee.zmq_setsockopt(pointer, Int32(option), &value, MemoryLayout<Int64>.size))
    }

    func set(_ option: Int, _ value: [UInt8]) throws(Failure) {
        try check(library.table.pointee.zmq_setsockopt(pointer, Int32(option), value, value.count))
    }

    func connect(to endpoint: String) throws(Failure) {
        try check(library.table.pointee.zmq_connect(pointer, endpoint))
    }

    /// - Returns: The endpoint, with the port chosen for `*`.
    func bind(to endpoint: String) throws(Failure) -> String {
        let table = library.table.pointee
        try check(table.zmq_bind(pointer, endpoint))
        var (text, size) = ([UInt8](repeating: 0, count: 256), 256)
        try check(table.zmq_getsockopt(pointer, Int32(CZMQ_LAST_ENDPOINT), &text, &size))
        return String(decoding: text.prefix(max(size - 1, 0)), as: UTF8.self)
    }

    /// Reports events of its connections to a PAIR socket at an address.
    func monitor(at address: String, events: Int) throws(Failure) {
        try check(library.table.pointee.zmq_socket_monitor(pointer, address, Int32(events)))
    }

    func endMonitor() {
        _ = library.table.pointee.zmq_socket_monitor(pointer, nil, 0)
    }

    /// - Returns: false if its queue is full, or the connection has ended.
    func send(_ parts: [[UInt8]]) -> Bool {
        for (index, part) in parts.enumerated() {
            let more = index < parts.count - 1 ? CZMQ_SNDMORE : 0
            // Only the first part can be refused: libzmq accepts whole messages.
            guard library.table.pointee.zmq_send(pointer, part, part.count, Int32(CZMQ_DONTWAIT | more)) >= 0 else { return false }
        }
        return true
    }

    struct Message {
        /// At most one more than the maximum.
        var parts: [[UInt8]] = []
        /// Size of all parts on the wire, with the overhead of ZeroMQ and CURVE.
        var wireByteCount = 0
    }

    /// Size of a part on the wire: CURVE's command name, nonce, tag and flags, after ZeroMQ's header.
    static func wireByteCount(ofPart size: Int) -> Int {
        let body = size + 33
        return body + (body <= 255 ? 2 : 9)
    }

    /// Receives one message; nil if there is none.
    func receive(maximumPartCount: Int) -> Message? {
        let table = library.table.pointee
        var received = Message()
        var message = czmq_msg_t()
        _ = table.zmq_msg_init(&message)
        defer { _ = table.zmq_msg_close(&message) }
        while true {
            guard table.zmq_msg_recv(&message, pointer, Int32(CZMQ_DONTWAIT)) >= 0 else {
                // libzmq delivers whole messages: after the first part, all are available.
                return received.parts.isEmpty ? nil : received
            }
            let size = table.zmq_msg_size(&message)
            received.wireByteCount += Self.wireByteCount(ofPart: size)
            if received.parts.count <= maximumPartCount {
                received.parts.append(Array(UnsafeRawBufferPointer(start: table.zmq_msg_data(&message), count: size)))
            }
            guard table.zmq_msg_more(&message) == 1 else { return received }
        }
    }

    private func check(_ result: Int32) throws(Failure) {
        guard result == 0 else { throw Failure(text: library.text(of: library.lastError)) }
    }
}
