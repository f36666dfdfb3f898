import WakuCrypto

/// A template of the link that an app opens for a notification. Its placeholders contain only values that are also in the notification's data:
///
/// - `{kind}`: the raw value of ``ContentKind``.
/// - `{chat}`: the hash of the chat as in `chatId`, hexadecimal without `0x`; empty if the request named no chat.
package struct DeepLinkTemplate: Hashable, Sendable {
    private enum Part: Hashable, Sendable {
        case literal(String)
        case kind
        case chat
    }

    package enum Problem: Error, Hashable, Sendable {
        case unknownPlaceholder(_ name: String)
        case unpairedBrace
    }

    private let parts: [Part]

    /// A link without placeholders.
    package init(_ link: String) {
        parts = link.isEmpty ? [] : [.literal(link)]
    }

    /// - Throws: ``Problem``
    package init(parsing text: String) throws(Problem) {
        var parts: [Part] = []
        var rest = text[...]
        while let brace = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) {
            if brace != rest.startIndex { parts.append(.literal(String(rest[..<brace]))) }
            let inside = rest[rest.index(after: brace)...]
            guard rest[brace] == "{", let end = inside.firstIndex(where: { $0 == "{" || $0 == "}" }), inside[end] == "}" else {
                throw .unpairedBrace
            }
            switch inside[..<end] {
            case "kind": parts.append(.kind)
            case "chat": parts.append(.chat)
            case let name: throw .unknownPlaceholder(String(name))
            }
            rest = inside[inside.index(after: end)...]
        }
        if !rest.isEmpty { parts.append(.literal(String(rest))) }
        self.parts = parts
    }

    /// Whether the link is the same for all notifications.
    var isConstant: Bool {
        parts.allSatisfy { if case .literal = $0 { true } else { false } }
    }

    /// nil for an empty template.
    func link(for subject: NotificationSubject) -> String? {
        guard let first = parts.first else { return nil }
        if parts.count == 1, case .literal(let link) = first { return link }
        return parts.map { part in
            switch part {
            case .literal(let text): text
            case .kind: subject.kind.rawValue
            case .chat: hexString(subject.chat)
            }
        }.joined()
    }
}
