import ArgumentParser
import PushClient
import Core

/// A device and its user's preferences for notifications.
struct DevicePreferencesOptions: ParsableArguments {
    @Option(help: "apn or firebase.") var platform: PlatformArgument = .apn
    @Option(help: "The device token of APNs or Firebase.") var deviceToken: String?
    @Option(
        help:
            "File with a Web Push subscription instead of --device-token, the JSON that browsers make; - for standard input. Each --server needs its vapid."
    )
    var webPush: String?
    @Option(help: "The app, for APNs.") var apnTopic = ""
    @Option(help: "The id of a chat that never notifies; repeat it for several.") var blockChat: [String] = []
    @Option(help: "The id of a chat whose messages do not notify, though mentions do; repeat it for several.") var muteChat: [String] = []
    @Option(help: "The public key of an author who never notifies; repeat it for several.") var blockAuthor: [PublicKeyArgument] = []
    @Flag(help: "Only contacts may notify.") var contactsOnly = false
    @Option(help: "The public key of a contact, for --contacts-only; repeat it for several.") var contact: [PublicKeyArgument] = []
    @Option(help: "The id of a chat whose mentions notify; repeat it for several.") var mentionsIn: [String] = []
    @Flag(help: "No mention notifies.") var noMentions = false
    @Flag(help: "Register, but want no notifications.") var disabled = false

    func validate() throws {
        guard (deviceToken == nil) != (webPush == nil) else { throw ValidationError("Give one of --device-token and --web-push") }
        try contact.validate(contactsOnly: contactsOnly)
        guard webPush == nil || apnTopic.isEmpty else { throw ValidationError("--apn-topic is for APNs, not for --web-push") }
    }

    /// The device without preferences.
    ///
    /// - Throws: ``CommandFailure`` when the file has no subscription.
    func device() throws(CommandFailure) -> DeviceProfile {
        if let deviceToken { return DeviceProfile(platform: platform.platform, deviceToken: DeviceToken(deviceToken), apnTopic: apnTopic) }
        return DeviceProfile(webPush: try PushSubscription(file: webPush ?? "-"))
    }

    func profile() throws(CommandFailure) -> DeviceProfile {
        var profile = try device()
        profile.isEnabled = !disabled
        profile.blockedChats = Set(blockChat)
        profile.mutedChats = Set(muteChat)
        profile.blockedAuthors = Set(blockAuthor.map(\.key))
        profile.contactsOnly = contactsOnly
        profile.contacts = Set(contact.map(\.key))
        profile.mentionChats = Set(mentionsIn)
        profile.blockMentions = noMentions
        return profile
    }
}

extension [PublicKeyArgument] {
    /// - Throws: `ValidationError` for contacts that would be ignored.
    func validate(contactsOnly: Bool) throws {
        guard isEmpty || contactsOnly else { throw ValidationError("--contact is for --contacts-only: without it everybody may notify") }
    }
}
