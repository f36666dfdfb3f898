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

    func set(_ option: Int, _ value: [UInt8]) throws(Failure) {
        try check(library.table.pointee.zmq_setsockopt(pointer, Int32(option), value, value.count))
    }

    /// - Returns: The endpoint, with the port chosen for `*`.
    func bind(to endpoint: String) throws(Failure) -> String {
        let table = library.table.pointee
        try check(table.zmq_bind(pointer, endpoint))
        var (text, size) = ([UInt8](repeating: 0, count: 256), 256)
        try check(table.zmq_getsockopt(pointer, Int32(CZMQ_LAST_ENDPOINT), &text, &size))
        return String(decoding: text.prefix(max(size - 1, 0)), as: UTF8.self)
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

    /// Receives the parts of one message, at most one more than the maximum; nil if there is none.
    func receive(maximumPartCount: Int) -> [[UInt8]]? {
        let table = library.table.pointee
        var received: [[UInt8]] = []
        var message = czmq_msg_t()
        _ = table.zmq_msg_init(&message)
        defer { _ = table.zmq_msg_close(&message) }
        while true {
            guard table.zmq_msg_recv(&message, pointer, Int32(CZMQ_DONTWAIT)) >= 0 else {
                // libzmq delivers whole messages: after the first part, all are available.
                return received.isEmpty ? nil : received
            }
            let size = table.zmq_msg_size(&message)
            if received.count <= maximumPartCount {
                received.append(Array(UnsafeRawBufferPointer(start: table.zmq_msg_data(&message), count: size)))
            }
            guard table.zmq_msg_more(&message) == 1 else { return received }
        }
    }

    private func check(_ result: Int32) throws(Failure) {
        guard result == 0 else { throw Failure(text: library.text(of: library.lastError)) }
    }
}
