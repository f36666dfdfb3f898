public import Core
import StatusProtocol
public import WakuCrypto

/// A device and its user's wishes, as they are to be registered. Installation id, access token, version and grants are the client's.
public struct DeviceProfile: Hashable, Sendable {
    public var platform: Platform
    public var deviceToken: DeviceToken
    /// The app, for APNs; empty for Firebase.
    public var apnTopic: String
    /// Whether notifications are wanted at present.
    public var isEnabled = true
    /// Only ``contacts`` get the access token.
    public var contactsOnly = false
    public var contacts: Set<PublicKey> = []
    /// Ids of chats that never notify.
    public var blockedChats: Set<String> = []
    /// Ids of chats whose messages do not notify; mentions do.
    public var mutedChats: Set<String> = []
    public var blockedAuthors: Set<PublicKey> = []
    /// No mentions at all.
    public var blockMentions = false
    /// Ids of chats whose mentions notify.
    public var mentionChats: Set<String> = []

    public init(platform: Platform, deviceToken: DeviceToken, apnTopic: String = "") {
        self.platform = platform
        self.deviceToken = deviceToken
        self.apnTopic = apnTopic
    }

    /// Why a server would refuse it for good; nil when there is nothing to object to.
    var flaw: String? {
        if deviceToken.isEmpty { return "the device token is empty" }
        if platform == .apn, apnTopic.isEmpty { return "the APNs topic is missing" }
        return nil
    }

    /// Whether the same would be registered: contacts count only where they decide who gets the token.
    func isRegisteredAs(_ other: DeviceProfile) -> Bool {
        var (left, right) = (self, other)
        if !left.contactsOnly, !right.contactsOnly { (left.contacts, right.contacts) = ([], []) }
        return left == right
    }

    /// Whether somebody who may have the access token under `old` lost the right to it.
    func revokesToken(of old: DeviceProfile) -> Bool {
        (contactsOnly && !old.contactsOnly) || !old.contacts.isSubset(of: contacts)
    }

    /// Everything but token, version, grant and ids.
    func fill(_ registration: inout PushNotificationRegistration) {
        registration.tokenType = UInt32(platform.rawValue)
        registration.deviceToken = deviceToken
        registration.apnTopic = apnTopic
        registration.enabled = isEnabled
        registration.allowFromContactsOnly = contactsOnly
        // Sorted: the same wishes give the same bytes.
        registration.blockedChatList =
            blockedChats.sorted().map(StatusHashes.chat)
            + blockedAuthors.map(StatusHashes.author).sorted { $0.lexicographicallyPrecedes($1) }
        registration.mutedChatList = mutedChats.sorted().map(StatusHashes.chat)
        registration.blockMentions = blockMentions
        registration.allowedMentionsChatList = mentionChats.sorted().map(StatusHashes.chat)
    }
}
