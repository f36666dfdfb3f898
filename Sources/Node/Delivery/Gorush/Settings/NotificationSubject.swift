/// The properties of a notification by which settings select it.
public struct NotificationSubject: Hashable, Sendable {
    /// `NodeProtocol.name`; empty if the protocol has no settings.
    package let protocolName: String
    package let kind: ContentKind
    /// The hash of the chat in the request; empty if the request named no chat.
    package let chat: [UInt8]
    /// Whether the protocol prescribes texts and data. Then only delivery settings apply, from rules that name the protocol.
    package let isFixed: Bool

    package init(protocolName: String, kind: ContentKind, chat: [UInt8] = [], isFixed: Bool = false) {
        self.protocolName = protocolName
        self.kind = kind
        self.chat = chat
        self.isFixed = isFixed
    }
}

/// The event that a notification announces. The raw values are used in the configuration file and for `{kind}` in deep links.
package enum ContentKind: String, Hashable, Sendable, CaseIterable {
    case message
    case mention
    case requestToJoinCommunity = "request-to-join-community"
    case contactRequest = "contact-request"
    /// Any other kind, for example a kind of a later client.
    case other
}
