import StatusProtocol

/// One of the node's identities, with everything that depends on it.
struct V01ServedIdentity: Sendable {
    /// nil for the identity that the database served first.
    let mark: ServerMark?
    let decoder: V01Decoder
    let register: V01RegisterHandler
    let request: V01RequestHandler
    let replies: V01Replies
}

/// A command with the identity that it was sent to, by its index.
struct V01AddressedCommand: Sendable {
    let command: V01Command
    let server: Int
}
