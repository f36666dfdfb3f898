import CTLS

/// The server's end of a TLS connection. Bytes come in and go out as values.
///
///     handshake ──(complete)──▶ open ──(close_notify)──▶ ended
///         └────────(error)────────┴──────────(error)──────▲
final class TLSConnection {
    enum Progress: Equatable {
        case open
        /// The client closed the connection, or broke the protocol.
        case ended
    }

    /// The maximum content of a TLS record.
    private static let recordByteCount = 16 << 10

    private let connection: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer
    /// The handshake is complete.
    private(set) var isEstablished = false

    /// Takes ownership of the connection; nil when memory is short.
    init?(taking connection: OpaquePointer) {
        guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
            SSL_free(connection)
            return nil
        }
        (self.connection, self.input, self.output) = (connection, input, output)
        // The connection owns both.
        SSL_set_bio(connection, input, output)
        SSL_set_accept_state(connection)
    }

    deinit {
        SSL_free(connection)
    }

    /// - Parameters:
    ///   - bytes: as they came from the network.
    ///   - content: receives the decrypted content, in pieces.
    func receive(_ bytes: UnsafeRawBufferPointer, _ content: (UnsafeRawBufferPointer) -> Void) -> Progress {
        guard bytes.isEmpty || BIO_write(input, bytes.baseAddress, Int32(clamping: bytes.count)) == bytes.count else { return .ended }
        if !isEstablished {
            ERR_clear_error()
            let result = SSL_do_handshake(connection)
            guard result == 1 else { return progress(result) }
            isEstablished = true
        }
        return withUnsafeTemporaryAllocation(byteCount: Self.recordByteCount, alignment: 1) { buffer in
            while true {
                ERR_clear_error()
                let count = SSL_read(connection, buffer.baseAddress, Int32(buffer.count))
                guard count > 0 else { return progress(count) }
                content(UnsafeRawBufferPointer(rebasing: buffer[..<Int(count)]))
            }
        }
    }

    private func progress(_ result: Int32) -> Progress {
        let error = SSL_get_error(connection, result)
        ERR_clear_error()
        return error == SSL_ERROR_WANT_READ ? .open : .ended
    }

    /// Encrypts content for the client: see ``takeOutput()``. Returns false when the connection can't send.
    func send(_ content: UnsafeRawBufferPointer) -> Bool {
        guard isEstablished else { return false }
        guard !content.isEmpty else { return true }
        ERR_clear_error()
        return SSL_write(connection, content.baseAddress, Int32(clamping: content.count)) == content.count
    }

    /// Tells the client that nothing follows.
    func sendCloseNotify() {
        guard isEstablished else { return }
        ERR_clear_error()
        _ = SSL_shutdown(connection)
        ERR_clear_error()
    }

    /// The number of bytes that wait to be sent to the network.
    var outputByteCount: Int { Int(waku_bio_pending(output)) }

    /// Moves bytes for the network into the buffer, and returns their number.
    func takeOutput(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        Int(max(0, BIO_read(output, buffer.baseAddress, Int32(clamping: buffer.count))))
    }
}

@available(*, unavailable)
extension TLSConnection: Sendable {}
