import StatusProtocol
import StatusRules

/// One of the node's identities, with everything that depends on it. All share topics of registrants, limits and the store.
struct ServedIdentity: Sendable {
    /// nil for the identity that the database served first.
    let mark: ServerMark?
    let decoder: StatusDecoder
    let registration: RegistrationHandler
    let request: RequestHandler
    let queries: QueryRules
    let replies: StatusReplies
}

/// A command with the identity that it was sent to, by its index. A query is sent to all.
struct AddressedCommand: Sendable {
    let command: StatusCommand
    let server: Int
}
