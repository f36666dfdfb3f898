package import CPushMessages

// Every message of Protos/, in the order of its files. Version 0.1 follows.

extension Protobuf__WakuMessage: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__waku_message__init }
}

extension Protobuf__SegmentMessage: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__segment_message__init }
}

extension Protobuf__ApplicationMetadataMessage: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__application_metadata_message__init }
}

extension Protobuf__PushNotificationRegistration: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__push_notification_registration__init }
}

extension Protobuf__PushNotificationRegistrationResponse: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__push_notification_registration_response__init }
}

extension Protobuf__PushNotificationQuery: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__push_notification_query__init }
}

extension Protobuf__PushNotificationQueryInfo: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__push_notification_query_info__init }
}

extension Protobuf__PushNotificationQueryResponse: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__push_notification_query_response__init }
}

extension Protobuf__PushNotification: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__push_notification__init }
}

extension Protobuf__PushNotificationRequest: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__push_notification_request__init }
}

extension Protobuf__PushNotificationReport: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__push_notification_report__init }
}

extension Protobuf__PushNotificationResponse: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__push_notification_response__init }
}

extension Protobuf__ContactCodeAdvertisement: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__contact_code_advertisement__init }
}

extension Protobuf__ProtocolMessage: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__protocol_message__init }
}

// Protos/push_notifications_v01.proto

extension Protobuf__V01__FilterSettings: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__filter_settings__init }
}

extension Protobuf__V01__DeviceToken: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__device_token__init }
}

extension Protobuf__V01__Preferences: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__preferences__init }
}

extension Protobuf__V01__Register: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__register__init }
}

extension Protobuf__V01__RegistrationResponse: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__registration_response__init }
}

extension Protobuf__V01__AdvertisementInfo: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__advertisement_info__init }
}

extension Protobuf__V01__ContactCodeAdvertisement: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__contact_code_advertisement__init }
}

extension Protobuf__V01__Query: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__query__init }
}

extension Protobuf__V01__QueryInfo: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__query_info__init }
}

extension Protobuf__V01__QueryResponse: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__query_response__init }
}

extension Protobuf__V01__PushNotification: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__push_notification__init }
}

extension Protobuf__V01__Request: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__request__init }
}

extension Protobuf__V01__Acknowledgement: ProtobufMessage {
    package static var initializing: ProtobufInitialize<Self> { protobuf__v01__acknowledgement__init }
}
