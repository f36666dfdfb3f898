public import Core
import StatusProtocol
public import WakuCrypto

/// A device and its user's wishes, as version 0.1 registers them. Installation id, access token and version are the client's.
public struct V01DeviceProfile: Hashable, Sendable {
    public var platform: Platform
    public var deviceToken: DeviceToken
    /// Whether notifications are wanted at present.
    public var isEnabled = true
    /// Only ``contacts`` get the access token.
    public var contactsOnly = false
    public var contacts: Set<PublicKey> = []
    /// Ids of chats that never notify.
    public var blockedChats: Set<String> = []

    public init(platform: Platform, deviceToken: DeviceToken) {
        self.platform = platform
        self.deviceToken = deviceToken
    }

    /// The same as the deployed protocol has it: what is stored, and compared.
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
    ///
    /// - Parameters:
    ///   - installationID: The device.
    ///   - token: The record's access token.
    ///   - identity: The account's.
    func device(_ installationID: InstallationID, token: AccessToken, identity: PrivateKey) -> V01.Device {
        let filters = V01.FilterSettings(
            isEnabled: isEnabled,
            allowedKeyList: contactsOnly ? Self.allowedKeyList(token, contacts, identity) : [],
            blockedChatList: blockedChats.sorted().map(V01.chatHash))
        return V01.Device(platform: platform, token: deviceToken, installationID: installationID, filters: filters)
    }

    /// The token sealed to each contact, and to the account itself: an empty list would give the token to everybody.
    static func allowedKeyList(_ token: AccessToken, _ contacts: Set<PublicKey>, _ identity: PrivateKey) -> [[UInt8]] {
        contacts.union([identity.publicKey]).sorted { $0.uncompressed.lexicographicallyPrecedes($1.uncompressed) }
            .map { V01.sealToken(token, from: identity, to: $0) }
    }
}
