/// What a notification is about, as far as settings select by it.
package struct NotificationSubject: Hashable, Sendable {
    /// Of `NodeProtocol.name`; empty if the protocol has no settings.
    package let protocolName: String
    package let kind: ContentKind
    /// The hash by which the request named the chat; empty if it named none.
    package let chat: [UInt8]
    /// Whether the protocol prescribes texts and data. Then only settings of delivery apply, from entries that name the protocol.
    package let isFixed: Bool

    package init(protocolName: String, kind: ContentKind, chat: [UInt8] = [], isFixed: Bool = false) {
        self.protocolName = protocolName
        self.kind = kind
        self.chat = chat
        self.isFixed = isFixed
    }
}

/// What happened. The raw values are those of the configuration file and of `{kind}` in deep links.
package enum ContentKind: String, Hashable, Sendable, CaseIterable {
    case message
    case mention
    case requestToJoinCommunity = "request-to-join-community"
    case contactRequest = "contact-request"
    /// Kinds of later clients.
    case other
}
