package import CPushMessages

// Every message of Protos/, in the order of its files.

extension Protobuf__WakuMessage: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__waku_message__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__waku_message__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__waku_message__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__waku_message__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__waku_message__pack }
}

extension Protobuf__SegmentMessage: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__segment_message__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__segment_message__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__segment_message__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__segment_message__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__segment_message__pack }
}

extension Protobuf__ApplicationMetadataMessage: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__application_metadata_message__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__application_metadata_message__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__application_metadata_message__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__application_metadata_message__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__application_metadata_message__pack }
}

extension Protobuf__PushNotificationRegistration: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__push_notification_registration__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__push_notification_registration__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__push_notification_registration__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__push_notification_registration__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__push_notification_registration__pack }
}

extension Protobuf__PushNotificationRegistrationResponse: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__push_notification_registration_response__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__push_notification_registration_response__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__push_notification_registration_response__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__push_notification_registration_response__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__push_notification_registration_response__pack }
}

extension Protobuf__PushNotificationQuery: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__push_notification_query__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__push_notification_query__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__push_notification_query__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__push_notification_query__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__push_notification_query__pack }
}

extension Protobuf__PushNotificationQueryInfo: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__push_notification_query_info__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__push_notification_query_info__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__push_notification_query_info__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__push_notification_query_info__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__push_notification_query_info__pack }
}

extension Protobuf__PushNotificationQueryResponse: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__push_notification_query_response__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__push_notification_query_response__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__push_notification_query_response__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__push_notification_query_response__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__push_notification_query_response__pack }
}

extension Protobuf__PushNotification: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__push_notification__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__push_notification__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__push_notification__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__push_notification__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__push_notification__pack }
}

extension Protobuf__PushNotificationRequest: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__push_notification_request__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__push_notification_request__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__push_notification_request__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__push_notification_request__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__push_notification_request__pack }
}

extension Protobuf__PushNotificationReport: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__push_notification_report__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__push_notification_report__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__push_notification_report__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__push_notification_report__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__push_notification_report__pack }
}

extension Protobuf__PushNotificationResponse: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__push_notification_response__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__push_notification_response__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__push_notification_response__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__push_notification_response__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__push_notification_response__pack }
}

extension Protobuf__ContactCodeAdvertisement: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__contact_code_advertisement__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__contact_code_advertisement__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__contact_code_advertisement__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__contact_code_advertisement__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__contact_code_advertisement__pack }
}

extension Protobuf__ProtocolMessage: ProtobufCMessage {
    package static var unpacking: ProtobufCUnpack<Self> { protobuf__protocol_message__unpack }
    package static var freeing: ProtobufCFree<Self> { protobuf__protocol_message__free_unpacked }
    package static var initializing: ProtobufCInitialize<Self> { protobuf__protocol_message__init }
    package static var measuring: ProtobufCMeasure<Self> { protobuf__protocol_message__get_packed_size }
    package static var packing: ProtobufCPack<Self> { protobuf__protocol_message__pack }
}
