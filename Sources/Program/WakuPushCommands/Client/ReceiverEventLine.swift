import Foundation
import PushReceiver
import Core

/// Lines of `client listen`: `notification protocol=status id=…`, or a JSON object with the event's name as `event`.
enum ReceiverEventLine {
    /// - Parameters:
    ///   - event: `prepared` or `listening`.
    ///   - origin: of the endpoint; its path is secret.
    ///   - file: the subscription file.
    ///   - options: the options of `serve` that the node needs; empty behind a proxy.
    static func receiver(_ event: String, origin: String, file: String, options: String, asJSON: Bool) -> String {
        line(event, [("origin", origin), ("subscription", file), ("nodeOptions", options)], asJSON)
    }

    static func notification(_ notification: ReceivedNotification, at date: Date, asJSON: Bool) -> String {
        asJSON ? json(of: notification, at: date) : line("notification", members(of: notification), false)
    }

    static func refused(_ refusal: PushInbox.Refusal, asJSON: Bool) -> String {
        line("refused", [("status", "\(refusal.status)"), ("reason", refusal.reason)], asJSON)
    }

    /// A reason or an option has spaces, and therefore comes last.
    private static func line(_ event: String, _ members: [(name: String, value: String)], _ asJSON: Bool) -> String {
        let members = members.filter { !$0.value.isEmpty }
        guard asJSON else {
            return ([event] + members.map { "\(dashed($0.name))=\(Output.printable($0.value))" }).joined(separator: " ")
        }
        return encoded(Dictionary(uniqueKeysWithValues: [("event", event)] + members.map { ($0.name, $0.value) }))
    }

    private static func dashed(_ name: String) -> String {
        name.map { $0.isUppercase ? "-" + $0.lowercased() : String($0) }.joined()
    }

    private static func members(of notification: ReceivedNotification) -> [(String, String)] {
        guard let fields = notification.fields else { return [("bytes", "\(notification.content.count)")] }
        return [
            ("protocol", fields.protocolName), ("id", fields.id), ("type", fields.type ?? ""), ("chat", fields.chatID ?? ""),
            ("publicKey", fields.publicKey ?? ""), ("installation", fields.installationIDs?.joined(separator: ",") ?? ""),
            ("truncated", fields.isTruncated == true ? "yes" : ""),
        ]
    }

    /// The content as it was sent if it is JSON, and in base64url else.
    private static func json(of notification: ReceivedNotification, at date: Date) -> String {
        let received = date.formatted(.iso8601)
        // Encoded again, so that it is one line whatever its sender wrote.
        if let content = try? JSONSerialization.jsonObject(with: Data(notification.content)) as? [String: Any] {
            return encoded(["event": "notification", "received": received, "content": content])
        }
        return encoded(["event": "notification", "received": received, "bytes": Base64URL.encode(notification.content)])
    }

    private static func encoded(_ object: [String: Any]) -> String {
        let data = try? JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
        return Output.printableJSON(data ?? Data())
    }
}

extension PushInbox.Refusal {
    fileprivate var reason: String {
        switch self {
        case .unknownPath: "no subscription has this path"
        case .removed: "the subscription was replaced"
        case .tooMany: "too many messages"
        case .tooLong: "the message is too long"
        case .badHeader(let name): "\(name) is missing or wrong"
        case .unsigned: "no VAPID token"
        case .wrongSignature: "the VAPID token is not valid, or of another server"
        case .notDecrypted: "the message was not encrypted to this subscription"
        }
    }
}
