/// What follows when gorush says that a token is dead, `PROTOCOL.md` section 6.
public enum VerdictRules {
    /// Whether the registration ends. Not when it is newer than the notification: then the verdict is about a token that was replaced.
    public static func endsRegistration(storedVersion: UInt64?, notifiedVersion: UInt64) -> Bool {
        storedVersion == notifiedVersion
    }
}
