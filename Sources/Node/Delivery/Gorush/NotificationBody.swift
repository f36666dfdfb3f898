package import Core
import Waku
import WakuCrypto

/// The members of a gorush notification other than `notif_id`, `tokens` and `platform`.
///
/// Contains the names of current gorush and those of 1.16 and earlier: each ignores names that it does not know.
public struct NotificationBody: Sendable {
    /// The first of ``devices``.
    package let first: Notification
    /// The devices of a group, at least one; all contents have the same type.
    package let devices: [Notification]
    package let profile: PayloadProfile
    /// The content's own style, with the operator's settings over it.
    let style: NotificationStyle
    /// A hash of the chat's hash, which reveals less than `data`. nil if no setting needs it, or the request named no chat.
    private let chatHash: ArraySlice<UInt8>?
    let now: Timestamp

    /// nil when `devices` is empty.
    init?(_ devices: [Notification], _ format: NotificationFormat, at now: Timestamp) {
        guard let first = devices.first else { return nil }
        self.first = first
        self.devices = devices
        profile = format.profile
        let style = format.style(of: first)
        self.style = style
        chatHash = style.collapse == .chat || style.thread == .chat ? Self.hash(ofChat: first.content.subject.chat) : nil
        self.now = now
    }

    var platform: Platform { first.platform }

    /// The deep link for `data`; nil if there is none.
    package var deepLink: String? { style.deepLink?.link(for: first.content.subject) }

    /// Writes the members of `data`.
    func writeData(to writer: inout JSONWriter) {
        guard profile == .private else { return first.content.writeData(for: self, to: &writer) }
        writer.value("id", first.id)
        if let deepLink { writer.value("deepLink", deepLink) }
    }

    /// Writes all members, for contents that don't prescribe their own.
    package func write(to writer: inout JSONWriter) {
        switch platform {
        case .apn: writeApple(to: &writer)
        case .firebase: writeFirebase(to: &writer)
        case .huawei: writeHuawei(to: &writer)
        case .webPush: break
        }
    }

    /// Writes only the delivery settings, for contents that prescribe their members.
    ///
    /// - Parameters:
    ///   - priority: the content's priority. It is repeated in Firebase's options, because gorush takes all of them from one object.
    package func writeDelivery(priority: String?, to writer: inout JSONWriter) {
        switch platform {
        case .apn: writeExpiration(to: &writer)
        case .firebase: writeFirebaseDelivery(priority: priority, to: &writer)
        case .huawei: writeHuaweiDelivery(to: &writer)
        case .webPush: break
        }
    }

    func writeText(_ name: StaticString, _ text: String?, to writer: inout JSONWriter) {
        if let text, !text.isEmpty { writer.value(name, text) }
    }

    func writeTitleAndMessage(to writer: inout JSONWriter) {
        writeText("message", style.body?.text, to: &writer)
        writeText("title", style.title?.text, to: &writer)
    }

    /// Whether the device shows text without the app's help. If not, no display properties may be sent: they would be shown without text.
    package var isVisible: Bool {
        [style.title, style.body].contains { $0?.text != nil || $0?.key != nil }
    }

    /// Whether the device shows a notification once when it arrives twice. The app shows data-only notifications, and may show both.
    var showsRepetitionOnce: Bool {
        guard first.content.isVisible(in: self) else { return false }
        return switch platform {
        case .apn: collapseID != nil && style.pushType != "background"
        case .firebase: firebaseTag != nil
        case .huawei: huaweiTag != nil
        case .webPush: false
        }
    }

    // MARK: Chats

    private static let chatDomain = Array("waku-push chat".utf8)
    private static let chatIDByteCount = 16

    private static func hash(ofChat chat: [UInt8]) -> ArraySlice<UInt8>? {
        chat.isEmpty ? nil : Shake256.hash64(chatDomain + chat).prefix(chatIDByteCount)
    }

    var threadID: String? { style.thread == .chat ? chatHash.map { hexString($0) } : nil }

    /// The hashed chat for `collapse: chat`; nil if that is not set or there is no chat.
    var collapsingChat: String? { style.collapse == .chat ? chatHash.map { hexString($0) } : nil }

    /// The Huawei collapse group, 1 to 100. While a device is not connected, Huawei keeps one notification of each group.
    var collapsingChatGroup: Int? { style.collapse == .chat ? chatHash.map { Int($0.first ?? 0) % 100 + 1 } : nil }

    // MARK: Time to live

    private static let second: Int64 = 1_000_000_000

    /// The expiry; for a group, the earliest.
    private var deadline: Timestamp? {
        switch style.timeToLive {
        case nil: nil
        case .seconds(let seconds): now + .seconds(seconds)
        case .remaining: devices.compactMap(\.expires).min()
        }
    }

    private static func roundedUp(_ nanoseconds: Int64) -> Int64 {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: second)
        return rest > 0 ? seconds + 1 : seconds
    }

    /// The expiry in seconds since 1970, rounded up.
    var expiration: Int64? { deadline.map { Self.roundedUp($0.rawValue) } }

    /// The time to live in seconds, at least 0; nil if the push service's own default applies.
    var timeToLive: Int64? { deadline.map { max(0, Self.roundedUp($0.since(now).nanoseconds)) } }
}
