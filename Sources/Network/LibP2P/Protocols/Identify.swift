import NIOCore

/// The identify protocol. The peer that opens a stream of `/ipfs/id/1.0.0` receives the other's information; on one of
/// `/ipfs/id/push/1.0.0` it sends its own.
enum Identify {
    static let id = "/ipfs/id/1.0.0"
    static let pushID = "/ipfs/id/push/1.0.0"
    static let limit = TimeAmount.seconds(10)

    static func request(_ connection: Connection) async throws -> PeerInfo {
        let stream = try await connection.openStream([id], within: limit)
        defer { stream.close() }
        stream.endAfter(limit)
        stream.finish()
        return try await receive(stream)
    }

    /// - Throws: ``ConnectionError/protocolViolation(_:)`` if the public key is not the peer's.
    static func receive(_ stream: PeerStream) async throws -> PeerInfo {
        var reader = MessageReader(stream, limit: PeerInfo.byteLimit)
        guard let message = try await reader.next() else { throw ConnectionError.closedByPeer }
        let info = try PeerInfo(parsing: Array(buffer: message))
        if let key = info.publicKey, PeerID(key) != stream.peer { throw ConnectionError.protocolViolation("identify: another node's key") }
        return info
    }

    static func send(_ info: PeerInfo, on stream: PeerStream) async throws {
        stream.endAfter(limit)
        var info = info
        info.observedAddress = stream.connection.remoteAddress?.withoutPeerID
        try await stream.writeMessage(ByteBuffer(bytes: info.encoded()))
        stream.finish()
    }
}
