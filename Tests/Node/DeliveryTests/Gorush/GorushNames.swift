import Core

/// The names that gorush reads from a notification: a path for each, joined by dots.
///
/// Current gorush is that of 2026-07, old gorush 1.12 to 1.16. Names of nested objects are those of the libraries that gorush hands them to:
/// firebase-admin-go's AndroidConfig, go-fcm's Notification, go-hms-push's AndroidNotification.
enum GorushNames {
    /// The members of `data` and `huawei_data` are defined by the app.
    static let appData: Set = ["data"]

    static let common: Set = [
        "notif_id", "tokens", "platform", "message", "title", "priority", "content_available", "mutable_content", "sound", "data", "topic",
        "retry", "image",
    ]

    static let apple: Set = [
        "expiration", "apns_id", "collapse_id", "push_type", "badge", "category", "thread-id", "url-args", "alert", "alert.title",
        "alert.subtitle", "alert.body", "alert.loc-key", "alert.loc-args", "alert.title-loc-key", "alert.title-loc-args",
        "alert.action-loc-key", "alert.launch-image", "production", "development", "interruption_level", "name", "volume",
    ]

    static let androidCurrent: Set = [
        "notification", "notification.title", "notification.body", "android", "android.collapse_key", "android.priority", "android.ttl",
        "android.restricted_package_name", "android.notification", "android.notification.tag", "android.notification.channel_id",
        "android.notification.sound", "android.notification.title_loc_key", "android.notification.body_loc_key", "apns", "webpush",
        "fcm_options", "condition",
    ]

    static let androidOld: Set = [
        "collapse_key", "time_to_live", "delay_while_idle", "dry_run", "api_key", "notification", "notification.tag", "notification.title",
        "notification.body", "notification.sound", "notification.android_channel_id", "notification.title_loc_key",
        "notification.body_loc_key",
    ]

    static let huawei: Set = [
        "app_id", "app_secret", "huawei_notification", "huawei_notification.tag", "huawei_notification.channel_id",
        "huawei_notification.group", "huawei_notification.title_loc_key", "huawei_notification.body_loc_key", "huawei_data",
        "huawei_collapse_key", "huawei_ttl", "bi_tag",
    ]

    /// The names of the same setting in old and current gorush.
    static let androidPairs = [
        ("collapse_key", "android.collapse_key"), ("time_to_live", "android.ttl"), ("priority", "android.priority"),
        ("notification.tag", "android.notification.tag"), ("notification.android_channel_id", "android.notification.channel_id"),
        ("sound", "android.notification.sound"), ("notification.title_loc_key", "android.notification.title_loc_key"),
        ("notification.body_loc_key", "android.notification.body_loc_key"),
    ]

    static func names(for platform: Platform) -> Set<String> {
        switch platform {
        case .apn: common.union(apple)
        // `topic` would be a broadcast.
        case .firebase: common.union(androidCurrent).union(androidOld).subtracting(["topic"])
        case .webPush: []
        case .huawei: common.union(huawei).subtracting(["topic"])
        }
    }
}
