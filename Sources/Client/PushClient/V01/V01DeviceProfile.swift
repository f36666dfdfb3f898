public import Core
import StatusProtocol
public import WakuCrypto

/// A device and its user's settings for version 0.1. The client adds installation id, access token and version.
public struct V01DeviceProfile: Hashable, Sendable {
    /// The push service that issued ``deviceToken``.
    public var platform: Platform
    /// The device's identifier at the push service; not empty.
    public var deviceToken: DeviceToken
    /// Whether notifications are enabled.
    public var isEnabled = true
    /// Only ``contacts`` receive the access token.
    public var contactsOnly = false
    /// The keys that receive the access token if ``contactsOnly`` is set. Removing one changes the access token, unless another device of the
    /// account is known to give it to contacts of its own.
    public var contacts: Set<PublicKey> = []
    /// Ids of chats that never cause notifications.
    public var blockedChats: Set<String> = []

    /// Creates a profile with notifications of all chats and from everyone.
    public init(platform: Platform, deviceToken: DeviceToken) {
        self.platform = platform
        self.deviceToken = deviceToken
    }

    /// The equivalent profile of the deployed protocol, for storage and comparison.
    var common: DeviceProfile {
        var profile = DeviceProfile(platform: platform, deviceToken: deviceToken)
        profile.isEnabled = isEnabled
        profile.contactsOnly = contactsOnly
        profile.contacts = contacts
        profile.blockedChats = blockedChats
        return profile
    }

    init(_ profile: DeviceProfile) {
        platform = profile.platform
        deviceToken = profile.deviceToken
        isEnabled = profile.isEnabled
        contactsOnly = profile.contactsOnly
        contacts = profile.contacts
        blockedChats = profile.blockedChats
    }

    /// The device's part of a record.
    func device(_ installationID: InstallationID, token: AccessToken, identity: PrivateKey) -> V01.Device {
        let filters = V01.FilterSettings(
            isEnabled: isEnabled,
            allowedKeyList: contactsOnly ? Self.allowedKeyList(token, contacts, identity) : [],
            blockedChatList: blockedChats.sorted().map(V01.chatHash))
        return V01.Device(platform: platform, token: deviceToken, installationID: installationID, filters: filters)
    }

    /// The token sealed to each contact and to the account itself, since an empty list would give the token to everyone.
    static func allowedKeyList(_ token: AccessToken, _ contacts: Set<PublicKey>, _ identity: PrivateKey) -> [[UInt8]] {
        contacts.union([identity.publicKey]).sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
            .map { V01.sealToken(token, from: identity, to: $0) }
    }
}
