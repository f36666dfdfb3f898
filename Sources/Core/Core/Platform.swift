/// The kind of push service of a device. The raw values are stored; those of APNs, Firebase and Huawei are also gorush's. The protocols have numbers
/// of their own:
///
/// | | stored | gorush | token type of Status | stored service of Session |
/// |---|---|---|---|---|
/// | APNs | 1 | 1 | 1 | 1; sandbox 2 |
/// | Firebase | 2 | 2 | 2 | 3 |
/// | Huawei | 3 | 3 | none | 4 |
/// | Web Push | 4 | none | 3 | 5 |
public enum Platform: Int32, Sendable, CaseIterable, Codable {
    case apn = 1
    case firebase = 2
    case huawei = 3
    /// A push service that takes Web Push messages from the node itself, without gorush.
    case webPush = 4

    /// The push services that gorush posts to.
    public static let ofGorush: [Platform] = [.apn, .firebase, .huawei]

    /// The name in options, logs and the output of admin commands.
    public var name: String {
        switch self {
        case .apn: "apn"
        case .firebase: "firebase"
        case .huawei: "huawei"
        case .webPush: "webpush"
        }
    }
}
