public import Core
import StatusProtocol
public import WakuCrypto

/// A device and its user's settings to register. The client adds installation id, access token, version and grants.
public struct DeviceProfile: Hashable, Sendable {
    /// The push service that issued ``deviceToken``.
    public var platform: Platform
    /// The device's identifier at the push service; not empty.
    public var deviceToken: DeviceToken
    /// The app's topic for APNs; empty for Firebase.
    public var apnTopic: String
    /// Whether notifications are enabled.
    public var isEnabled = true
    /// Only ``contacts`` receive the access token.
    public var contactsOnly = false
    /// The keys that receive the access token if ``contactsOnly`` is set. Removing one changes the access token.
    public var contacts: Set<PublicKey> = []
    /// Ids of chats whose messages cause no notifications. Servers do not apply it to mentions: see ``mentionChats``.
    public var blockedChats: Set<String> = []
    /// Ids of chats whose messages cause no notifications. Mentions are not affected: they notify in ``mentionChats`` only.
    public var mutedChats: Set<String> = []
    /// Keys of authors whose messages never cause notifications.
    public var blockedAuthors: Set<PublicKey> = []
    /// Mentions never cause notifications.
    public var blockMentions = false
    /// Ids of chats in which mentions cause notifications: in no others, muted or not.
    public var mentionChats: Set<String> = []

    /// Creates a profile with notifications of the messages of all chats, from everyone, and of no mentions: add ``mentionChats``. APNs requires a topic.
    public init(platform: Platform, deviceToken: DeviceToken, apnTopic: String = "") {
        self.platform = platform
        self.deviceToken = deviceToken
        self.apnTopic = apnTopic
    }

    /// A device that is reached by Web Push.
    public init(webPush subscription: PushSubscription) {
        self.init(platform: .webPush, deviceToken: DeviceToken(bytes: subscription.json))
    }

    /// Why a server would reject the profile permanently; nil when it is valid.
    var flaw: String? {
        if deviceToken.isEmpty { return "the device token is empty" }
        if platform == .webPush, PushSubscription(json: deviceToken.bytes) == nil { return "the Web Push subscription is not valid" }
        if platform == .apn, apnTopic.isEmpty { return "the APNs topic is missing" }
        return nil
    }

    /// Whether both profiles give the same registration: contacts matter only with ``contactsOnly``.
    func isRegisteredAs(_ other: DeviceProfile) -> Bool {
        var (left, right) = (self, other)
        if !left.contactsOnly, !right.contactsOnly { (left.contacts, right.contacts) = ([], []) }
        return left == right
    }

    /// Whether a client that may have the access token under `old` is no longer allowed to.
    func revokesToken(of old: DeviceProfile) -> Bool {
        (contactsOnly && !old.contactsOnly) || !old.contacts.isSubset(of: contacts)
    }

    /// The registration with a server, without ids and version.
    func registration(
        with server: PublicKey, accessToken: AccessToken, allowedKeyList: [[UInt8]], by cryptography: any ClientCryptography
    ) -> PushNotificationRegistration {
        var registration = PushNotificationRegistration()
        registration.tokenType = platform.tokenType
        registration.deviceToken = deviceToken
        registration.apnTopic = apnTopic
        registration.enabled = isEnabled
        registration.accessToken = accessToken
        registration.allowFromContactsOnly = contactsOnly
        registration.allowedKeyList = allowedKeyList
        // Sorted, so that the same settings give the same bytes.
        registration.blockedChatList =
            blockedChats.sorted().map(StatusHashes.chat)
            + blockedAuthors.map(StatusHashes.author).sorted { $0.lexicographicallyPrecedes($1) }
        registration.mutedChatList = mutedChats.sorted().map(StatusHashes.chat)
        registration.blockMentions = blockMentions
        registration.allowedMentionsChatList = mentionChats.sorted().map(StatusHashes.chat)
        registration.grant = cryptography.makeGrant(for: server, accessToken: accessToken)
        return registration
    }

    /// The access token, encrypted for each key that may have it; empty if everyone may.
    func allowedKeyList(_ accessToken: AccessToken, by cryptography: any ClientCryptography) -> [[UInt8]] {
        guard contactsOnly else { return [] }
        // Servers of the published dialect would give the token to everyone if the list were empty.
        let keys = contacts.isEmpty ? [cryptography.publicKey] : contacts
        return keys.sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }.map { cryptography.seal(accessToken, for: $0) }
    }
}
