import Core
import WakuCrypto

struct StoredProfile: Codable, Hashable, Sendable {
    var platform: Platform
    @Stored var deviceToken: DeviceToken
    var apnTopic: String
    var isEnabled: Bool
    var contactsOnly: Bool
    @Stored var contacts: [PublicKey]
    var blockedChats: [String]
    var mutedChats: [String]
    @Stored var blockedAuthors: [PublicKey]
    var blockMentions: Bool
    var mentionChats: [String]

    init(_ profile: DeviceProfile) {
        platform = profile.platform
        _deviceToken = Stored(wrappedValue: profile.deviceToken)
        apnTopic = profile.apnTopic
        isEnabled = profile.isEnabled
        contactsOnly = profile.contactsOnly
        _contacts = Stored(wrappedValue: Array(profile.contacts))
        blockedChats = profile.blockedChats.sorted()
        mutedChats = profile.mutedChats.sorted()
        _blockedAuthors = Stored(wrappedValue: Array(profile.blockedAuthors))
        blockMentions = profile.blockMentions
        mentionChats = profile.mentionChats.sorted()
    }

    var profile: DeviceProfile {
        var profile = DeviceProfile(platform: platform, deviceToken: deviceToken, apnTopic: apnTopic)
        profile.isEnabled = isEnabled
        profile.contactsOnly = contactsOnly
        profile.contacts = Set(contacts)
        profile.blockedChats = Set(blockedChats)
        profile.mutedChats = Set(mutedChats)
        profile.blockedAuthors = Set(blockedAuthors)
        profile.blockMentions = blockMentions
        profile.mentionChats = Set(mentionChats)
        return profile
    }
}
