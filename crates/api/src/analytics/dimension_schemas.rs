//! The dimensions as fields of requests and answers, for the OpenAPI document.

use postroad_app::analytics::Dimension;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    KnownFormat, ObjectBuilder, OneOfBuilder, RefBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

use super::dimension_fields::{SeriesOut, SeriesPointsOut};
use super::filter_schema::{FilterIn, IdFilterIn};

/// An optional filter for each dimension.
#[derive(Debug)]
pub(crate) enum FiltersIn {}

type Schemas = Vec<(String, RefOr<Schema>)>;

impl PartialSchema for FiltersIn {
    fn schema() -> RefOr<Schema> {
        let mut filters = ObjectBuilder::new().description(Some("Only messages that match all of these."));
        for dimension in Dimension::ALL {
            let schema = if dimension.is_number() { IdFilterIn::name() } else { FilterIn::name() };
            let filter = RefBuilder::new()
                .ref_location_from_schema_name(schema)
                .description(Some(dimension.description()));
            let null = ObjectBuilder::new().schema_type(Type::Null);
            filters = filters.property(dimension.as_str(), OneOfBuilder::new().item(filter).item(null));
        }
        filters.into()
    }
}

impl ToSchema for FiltersIn {
    fn schemas(schemas: &mut Schemas) {
        schemas.push((FilterIn::name().into_owned(), FilterIn::schema()));
        schemas.push((IdFilterIn::name().into_owned(), IdFilterIn::schema()));
        <IdFilterIn as ToSchema>::schemas(schemas);
    }
}

impl PartialSchema for SeriesOut {
    fn schema() -> RefOr<Schema> {
        let RefOr::T(Schema::Object(points)) = SeriesPointsOut::schema() else {
            unreachable!("the schema of a struct is an object");
        };
        let description = "Has a property for each requested dimension: its value, or null for messages without one. In the series with \
                           `rest`, all of them are null.";
        let mut series = ObjectBuilder::from(points).description(Some(description));
        for dimension in Dimension::ALL {
            let (kind, format) = if dimension.is_number() {
                (Type::Integer, Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            } else {
                (Type::String, None)
            };
            let kind = SchemaType::from_iter([kind, Type::Null]);
            let value = ObjectBuilder::new().schema_type(kind).format(format);
            series = series.property(dimension.as_str(), value);
        }
        series.into()
    }
}

impl ToSchema for SeriesOut {
    fn schemas(schemas: &mut Schemas) {
        <SeriesPointsOut as ToSchema>::schemas(schemas);
    }
}
